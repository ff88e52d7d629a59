"""Words to leave out, of many languages."""

from __future__ import annotations

#: Names of languages, and their ISO codes.
LANGUAGES = {
    "afrikaans": "af", "arabic": "ar", "armenian": "hy", "basque": "eu", "bengali": "bn", "breton": "br",
    "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs", "danish": "da",
    "dutch": "nl", "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr",
    "galician": "gl", "german": "de", "greek": "el", "gujarati": "gu", "hausa": "ha", "hebrew": "he", "hindi": "hi",
    "hungarian": "hu", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "korean": "ko",
    "kurdish": "ku", "latin": "la", "latvian": "lv", "lithuanian": "lt", "malay": "ms", "marathi": "mr",
    "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "slovak": "sk", "slovenian": "sl", "somali": "so", "sotho": "st", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tagalog": "tl", "thai": "th", "turkish": "tr", "ukrainian": "uk", "urdu": "ur",
    "vietnamese": "vi", "yoruba": "yo", "zulu": "zu",
}  # fmt: skip
CODES = frozenset(LANGUAGES.values())


def language_code(language: str) -> str | None:
    """The ISO code of a language by name or code; None if it is not known.

    Examples
    --------
    >>> from pluri.topics.text.stop_words import language_code
    >>> language_code("German"), language_code("pt"), language_code("elvish")
    ('de', 'pt', None)
    """
    name = language.strip().lower()
    return name if name in CODES else LANGUAGES.get(name)


def stop_words(language: str) -> list[str]:
    """Words that say nothing of what a text is about.

    Parameters
    ----------
    language : str
        Name in English, or ISO code. English ones are scikit-learn's; those of 57 other languages come with the package
        stopwordsiso (``pip install 'pluri[text]'``), whose lists are long: look at them if a word is missing.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from pluri.topics import stop_words
    >>> "the" in stop_words("english"), "und" in stop_words("german")
    (True, True)
    """
    code = language_code(language)
    if code is None:
        known = ", ".join(LANGUAGES)
        raise ValueError(f"language must be one of {known}, or an ISO code of one of them, got {language!r}")
    if code == "en":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return sorted(ENGLISH_STOP_WORDS)
    try:
        import stopwordsiso
    except ImportError as missing:
        raise ImportError(f"stop words of {language!r} need stopwordsiso: pip install 'pluri[text]'") from missing
    return sorted(stopwordsiso.stopwords(code))
