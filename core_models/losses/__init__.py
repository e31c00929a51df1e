"""What systems are trained to lower."""
