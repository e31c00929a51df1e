"""Parts of pages that several of them show."""
