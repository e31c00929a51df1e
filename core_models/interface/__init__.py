"""The interface between backbones, mechanisms and search: hook points, mechanism states and search states."""
