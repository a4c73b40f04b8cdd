"""Long messages whose sentences all differ, for tests of what is shown of them and what can be opened."""

_THINGS = ("kettle", "ladder", "engine", "violin", "garden", "bridge", "pillow", "carpet", "window", "market")
NEEDLE = "The spare cellar key hangs behind the copper barometer."


def essay(chars, needle=NEEDLE, first=0):
    """Return sentences of about so many characters, numbered from `first`; after two thirds of them comes a needle."""
    sentences, size = [], 0
    while size < chars:
        number = first + len(sentences)
        thing = _THINGS[number % len(_THINGS)]
        sentences.append(f"Point {number} says how a {thing} was repaired in year {1200 + number}, with much patience.")
        size += len(sentences[-1]) + 1
    sentences.insert(2 * len(sentences) // 3, needle)
    paragraphs = [" ".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6)]
    return "\n\n".join(paragraphs)


def sentences_of(text):
    return [sentence.strip() for line in text.splitlines() for sentence in line.replace(". ", ".\n").splitlines()]
