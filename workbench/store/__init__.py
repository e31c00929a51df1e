"""Files on disk: runs, translations, annotations, and digests that tell versions apart. No torch, no figure."""
