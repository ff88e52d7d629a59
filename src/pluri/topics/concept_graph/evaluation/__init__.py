"""What a concept graph says of documents: `fitted` (a draw of it), `levels`, `draws` (several), `held_out`."""
