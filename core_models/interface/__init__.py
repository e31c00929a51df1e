"""Where backbones, mechanisms and the search meet: what a mechanism may read and add, and the state of a search."""
