"""The dual method for large models; see ``solver``."""
