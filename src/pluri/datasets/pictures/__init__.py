"""Pictures to denoise, to fill and to compress."""

from pluri.datasets.pictures.photographs import load_bsds_color, load_bsds_gray, load_test_images

__all__ = ["load_bsds_color", "load_bsds_gray", "load_test_images"]
