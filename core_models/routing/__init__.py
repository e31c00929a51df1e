"""Routing between capsules: dynamic and EM routing, routing guided by the decoder or by a query."""

from core_models.routing.algorithms import Routing, dynamic_routing, em_routing, squash, squash_unit_slope, unit_scale
from core_models.routing.guided import guided_routing
from core_models.routing.query_guided import query_guided_routing, shared_dynamic_routing

__all__ = [
    "Routing", "dynamic_routing", "em_routing", "guided_routing", "query_guided_routing", "shared_dynamic_routing",
    "squash", "squash_unit_slope", "unit_scale",
]  # fmt: skip
