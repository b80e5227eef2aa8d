"""Model inspection: activation recording, attention and prediction pages, ablation, run reports."""
