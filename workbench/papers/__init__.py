"""What the five papers print: their numbers as data, checked against each other, never corrected."""
