"""Pictures as overlapping patches with a sparse dictionary: noise taken away, holes filled."""

from pluri.factors.dictionaries.images.denoiser import ImageDenoiser, denoise_image
from pluri.factors.dictionaries.images.inpainter import ImageInpainter, inpaint_image
from pluri.factors.dictionaries.images.patches import PatchExtractor

__all__ = ["ImageDenoiser", "ImageInpainter", "PatchExtractor", "denoise_image", "inpaint_image"]
