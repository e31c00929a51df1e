"""Parts of networks that backbones, mechanisms and losses share; each knows tensors alone."""
