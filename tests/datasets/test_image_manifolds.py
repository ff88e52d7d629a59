"""Faces and objects are read as rows that fold into pictures."""

import numpy as np
import pytest

from pluri.datasets import load_coil20, load_frey_faces

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 4, 2)).astype(np.uint8)


def test_faces_are_rows_of_pixels(tmp_path):
    np.savez(tmp_path / "frey_faces.npz", X=IMAGES)
    faces = load_frey_faces(tmp_path)
    np.testing.assert_array_equal(faces.X.reshape(-1, *faces.image_shape), IMAGES)
    np.savez(tmp_path / "frey_faces.npz", X=IMAGES.reshape(3, 8))
    with pytest.raises(ValueError, match="X of images"):
        load_frey_faces(tmp_path)


def test_objects_have_their_number(tmp_path):
    np.savez(tmp_path / "coil20_32x32.npz", X=IMAGES, y=[0, 1, 1])
    objects = load_coil20(tmp_path)
    np.testing.assert_array_equal(objects.X.reshape(-1, *objects.image_shape), IMAGES)
    assert [objects.class_names[label] for label in objects.y] == ["object 0", "object 1", "object 1"]
    np.savez(tmp_path / "coil20_32x32.npz", X=IMAGES, y=[0, 1])
    with pytest.raises(ValueError, match="y \\(n,\\)"):
        load_coil20(tmp_path)
