"""``pluri denoise`` and ``pluri inpaint``: pictures in, pictures out."""
