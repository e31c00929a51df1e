"""Speed: systems of the catalogue and other engines on the same work, one after the other, in rounds."""
