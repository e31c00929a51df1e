"""The numbers published in the five papers as data, checked against each other, never corrected."""
