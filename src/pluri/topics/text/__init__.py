"""From texts to words: languages, stop words, phrases, and text without spaces."""
