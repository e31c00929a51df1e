"""What lies on disk: runs, translations, annotations, and what tells versions of them apart. No torch, no figure."""
