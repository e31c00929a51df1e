"""Network layers shared by backbones, mechanisms and losses; they work on tensors only."""
