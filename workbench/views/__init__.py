"""A folder a feature: measure (runs to tables), plots (tables to figures), figures (requests), sections and page."""
