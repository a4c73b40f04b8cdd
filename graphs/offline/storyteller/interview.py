"""Interview: getting to know the character. What it reads by is in portrait.toml, what it asks in interview.toml."""

import random
import re
from functools import cache

from questbook.graphs.offline.storyteller import answers
from questbook.graphs.offline.storyteller.language import article, fill, load, neat, pattern, saying, seeded, upper
from questbook.types import JSON

REQUIRED = ("name", "ancestry", "class", "background", "goal")
_NAME_WORD = r"[A-Z][\w'’-]*"
_NAME = re.compile(rf"{_NAME_WORD}(?:(?:\s+(?:of|the|von|van|de|del|der|du|la|le|al|bin|ibn))*\s+{_NAME_WORD})*")
_AFTER_NAME = re.compile(r"\s*(?:$|[,.]|(?:and|the|an?|who|from)\b)")
_ARTICLE = re.compile(r"^\W*(?:the|an?)\s+", re.I)
_LEAD = re.compile(r"^\W*(?:and|but|also|so|or|i|she|he|they|my character)\b\s*(?:['’][ms]\b)?\s*(?:am|is)?\s+", re.I)
_TAIL = re.compile(r"\b(?:from|of|by|with|on|over|hunting|against|to|who|named|called|in|at|looking|and|but)\b|[,;:]")
_FROM = re.compile(r"\bfrom\s+(?:the|an?|my|[A-Z])[^,.;]*")
_TEXTS = ("name", "ancestry", "class", "background", "goal", "appearance", "personality")
_MOST_READ = 2000  # characters of a message


def answer(
    page: JSON, missing: list[str], words: str, asked: str, result: str = "", *, seed: int | None = None
) -> tuple[str, JSON | None]:
    """Return the reply to a message in the interview, and the patch to note, if anything was learnt.

    `missing` are the page's open fields, `words` the newest message ("" after a tool call), `asked` the storyteller's
    last one, `result` what the tool answered, if it was called just now.
    """
    chance = seeded((seed, words, asked, repr(sorted(page.items(), key=lambda field: field[0])), result))
    open_fields = missing or [field for field in REQUIRED if not page.get(field)]
    if pattern("questions", "refused").search(result):
        reason = " ".join(result.split())[:200]
        again = f"Say it to me once more, in other words? {_question(open_fields, chance)}"
        return f"That would not go on the page ({reason}) {again}", None
    if result:
        name, done = str(page.get("name") or "traveller"), not open_fields
        return (_pick("complete", chance).replace("{name}", name) if done else _question(open_fields, chance)), None
    if pattern("questions", "honest").search(words):
        return f"{saying('honest')} And now you: {_question(open_fields, chance)}", None
    known = (answers.tell(about, answers.Past(character=page)) for about in answers.asked(words))
    if told := " ".join(filter(None, known)):
        return f"{told} {_question(open_fields, chance)}", None
    field = asked_field(asked)
    insist = bool(field) and load("interview")["ideas"][field] in asked
    patch: JSON = {}
    for at, said in enumerate(pattern("portrait", "no_wait").split(words[:_MOST_READ])):
        patch |= read(said, field, {} if at else page, insist=insist)  # "A fighter. No, wait: a bard." means the last
    drawn: list[str] = []
    if (surprise := pattern("questions", "surprise")).search(words):  # what they leave to chance: all, if not named
        patch = {field: value for field, value in patch.items() if not surprise.search(str(value))}
        named = _named_fields(words) or open_fields
        drawn = [field for field in open_fields if field not in patch and field in named]
        patch |= {field: chance.choice(load("interview")["chance"][field]) for field in drawn}
    if not patch:
        return _ask_again(words, field, asked, open_fields, chance), None
    if left := [field for field in open_fields if not patch.get(field)]:
        return f"{_take_up(patch, page, drawn, chance)} {_question(left, chance)}", patch
    complete = _pick("complete", chance).replace("{name}", str(patch.get("name") or page.get("name")))
    return f"{_drawn(drawn, patch)} {complete}".strip() if drawn else complete, patch


def asked_field(message: str) -> str:
    """Say which field the last question of a message is about; "" if about none."""
    question = (re.findall(r"[^.!?]*\?", message) or [""])[-1]
    own = [f for f in REQUIRED if any(text in message for text in load("interview")["questions"][f])]
    return next(iter(own or _named_fields(question)), "")


def _drawn(drawn: list[str], patch: JSON) -> str:
    fields = "; ".join(f"{field}: {patch[field]}" for field in drawn)
    return f"You leave it to me, so I have drawn from the hat – {fields}."


def _take_up(patch: JSON, page: JSON, drawn: list[str], chance: random.Random) -> str:
    if drawn:
        return _drawn(drawn, patch)
    fields = [field for field in REQUIRED if field in patch]
    if changed := ", ".join(f"{field} {patch[field]}" for field in fields if page.get(field)):
        return _pick("changed", chance).replace("{what}", changed)
    parts = {field: str(value) for field, value in patch.items()}
    parts |= {f"{field}_a": upper(article(parts[field])) for field in ("ancestry", "class") if field in patch}
    texts = [fill(chance.choice(load("interview")["taken_up"][field]), parts) for field in fields[:2]]
    return " ".join(texts) or _pick("noted", chance)


def _question(open_fields: list[str], chance: random.Random, asked: str = "") -> str:
    if not open_fields:
        return "Is there anything else I should know about you?"
    questions = load("interview")["questions"][open_fields[0]]
    return str(chance.choice([question for question in questions if question not in asked] or questions))


def _ask_again(words: str, field: str, asked: str, open_fields: list[str], chance: random.Random) -> str:
    if not asked or not open_fields:
        return f"{_pick('welcome', chance)} {_question(open_fields, chance)}"
    field = field or open_fields[0]
    wanted = _named_fields(words)
    field = next(iter(wanted), field) if pattern("portrait", "wrong").match(words) else field
    if pattern("questions", "ideas").search(words) or (wanted and words.strip().endswith("?")):
        opening, wanted = "", wanted or [name for name in ("ancestry", "class") if name in open_fields] or [field]
    else:
        opening = "Well met!" if pattern("questions", "greeting").match(words) else _pick("again", chance)
        wanted = [field]
    ideas = " ".join(load("interview")["ideas"][name] for name in wanted)
    return f"{opening} {ideas} {_question([field], chance, asked)}".strip()


def _named_fields(words: str) -> list[str]:
    return [field for field in REQUIRED if pattern("questions", "fields", field).search(words)]


def _pick(occasion: str, chance: random.Random) -> str:
    return str(chance.choice(load("interview")[occasion]))


def read(words: str, asked: str, known: JSON, *, insist: bool = False) -> JSON:
    """Return what a message says about the character, as a patch of the page: only what was said and is new.

    `asked` is the field that the last question was about, "" if none, and `known` the page as it is; `insist`: the
    question has been asked before, so take whatever is no small talk.
    """
    text = ". ".join(line.strip(" .") for line in words.split("\n") if line.strip(" ."))[:_MOST_READ]
    text = pattern("portrait", "spelling").sub(lambda m: load("portrait")["spelt"].get(m[0].casefold(), m[0]), text)
    text = pattern("portrait", "states").sub(r"\1: ", pattern("portrait", "changes").sub(r"\1: ", text))
    fields: JSON = {} if text.endswith("?") else _sentences(text)
    if asked not in ("", "name") and fields.get("name") == neat(text):
        del fields["name"]  # "London" names a place
    if asked and asked not in fields and not text.endswith("?") and (answer := _answer(text, asked, fields, insist)):
        fields = {name: value for name, value in fields.items() if name not in ("appearance", "personality")}
        fields[asked] = answer
    if not pattern("portrait", "corrections").search(text):
        kept = {name for name in _TEXTS if known.get(name) and name != asked}
        fields = {name: value for name, value in fields.items() if name not in kept}
    fields = {n: v[: 78 if n in REQUIRED[:3] else 398] if isinstance(v, str) else v for n, v in fields.items()}
    return {name: value for name, value in fields.items() if value and value != known.get(name)}


def is_talk(text: str) -> bool:
    """Whether words are a greeting, a mood, a question or a command of the game, and say nothing of a character."""
    for part in re.split(r"[.,;!?…:()\"“”*]+(?:\s+|$)", text[:400]):
        plain = " ".join(part.casefold().replace("’", "'").strip(" '‘").split())[:120]
        bare = pattern("portrait", "fillers").sub("", f"{plain} ", count=1).strip()
        if re.search(r"\w", part) and bare and not any(map(pattern("portrait", "talk").fullmatch, (plain, bare))):
            return False
    return True


def _sentences(text: str) -> JSON:
    labels, alignments = pattern("portrait", "labels"), pattern("portrait", "alignments")
    called = load("portrait")["label_fields"]
    fields: JSON = {called.get(m[1].casefold(), m[1].casefold()): neat(m[2]) for m in labels.finditer(text)}
    if name := _stated_name(text):
        fields["name"] = name
    if alignment := alignments.search(text):
        fields.setdefault("alignment", alignment[0].strip().casefold())
    text = alignments.sub("", labels.sub("", text))
    clauses = [clause.strip(" ,.") for clause in pattern("portrait", "breaks").split(text)]
    others = [c for n, c in enumerate(clauses) if c and not is_talk(c) and not _clause(c, fields, first=n == 0)]
    if set(fields) & set(REQUIRED):
        for clause in others:  # what has no field of its own is not lost
            if pattern("portrait", "own").match(clause) and not pattern("portrait", "names").search(clause):
                _add(fields, "background", neat(_LEAD.sub("", clause)))
    return fields


def _clause(clause: str, fields: JSON, *, first: bool) -> bool:
    """Add to the fields what a clause says: a wish, a past, looks, a habit, or who one is; False if nothing."""
    rest, past = _after_self(clause, first=first), pattern("portrait", "pasts").fullmatch(clause)
    if rest is not None and not (past and fields.get("class")) and _identity(rest, fields):
        return True
    bare = neat(_LEAD.sub("", clause))
    if whence := pattern("portrait", "whence").fullmatch(clause):
        _add(fields, "background", neat(whence["what"]))
    elif past:
        _add(fields, "background", bare)
    elif pattern("portrait", "goals").fullmatch(clause):
        fields.setdefault("goal", bare)
    elif pattern("portrait", "habits").fullmatch(clause):
        _add(fields, "personality", bare)
    elif pattern("portrait", "features").search(clause):
        _add(fields, "appearance", re.sub(r"^(?:have|has|with)\s+", "", bare))
    else:
        return _adjectives(clause, fields)
    return True


def _after_self(clause: str, *, first: bool) -> str | None:
    """Return what follows "I'm" and the like; a clause without a verb is about the character too. None: it is not."""
    if match := pattern("portrait", "self").match(clause):
        return None if re.match(r"not\b", clause[match.end() :], re.I) else clause[match.end() :]
    words, named = _words(clause), first and bool(_NAME.match(clause)) and "," in clause
    plain = len(words) <= 5 and not set(words) & _not_a_kind()
    return clause if named or _ARTICLE.match(clause) or plain else None


def _identity(text: str, fields: JSON) -> bool:
    """Read "Mira, a halfling thief from the docks"; False if it does not say who or what one is."""
    name = (low := pattern("portrait", "low_name").match(text)) or _NAME.match(text)
    if name and nameable(name[0]) and (low or _AFTER_NAME.match(text, name.end())):
        fields.setdefault("name", name[0] if name[0][0].isupper() else name[0].title())
        text = re.sub(r"^[\s,]*(?:and\s+)?(?:i['’]?m\s+)?", "", text[name.end() :])
    noun = _ARTICLE.sub("", _TAIL.split(text, maxsplit=1)[0], count=1).strip()
    ancestry, class_ = pattern("portrait", "ancestries").search(noun), _classes().search(noun)
    if ancestry:
        fields.setdefault("ancestry", load("portrait")["adjectives"].get(ancestry[1].casefold(), ancestry[1]))
        trade = noun[ancestry.end() :].strip()
        if not class_ and 0 < len(trade.split()) <= 2 and not set(_words(trade)) & _not_a_kind():
            fields.setdefault("class", trade)
    if class_:
        fields.setdefault("class", class_[1] if class_[1][0].isupper() else class_[1].casefold())
    if not (ancestry or class_):
        return bool(name and str(fields.get("name")).casefold() == name[0].casefold() and not noun)
    _adjectives(noun, fields)
    features = re.search(r"\bwith\s+((?:(?!\bwho\b)[^.;])*)", text)
    if features and pattern("portrait", "features").search(features[1]):
        _add(fields, "appearance", neat(features[1]))
    if whence := _FROM.search(text):
        _add(fields, "background", neat(whence[0]))
    return True


def _adjectives(text: str, fields: JSON) -> bool:
    """Read looks and traits out of a few words: "tall", "shy but stubborn"; False if there are none."""
    for field, kind in (("appearance", "looks"), ("personality", "traits")):
        if adjectives := [match[0] for match in pattern("portrait", kind).finditer(text)]:
            _add(fields, field, ", ".join(adjectives))
    return _without_adjectives(text) != text


def _answer(text: str, asked: str, fields: JSON, insist: bool) -> str:
    """Take a message as the answer to a question, as it is; "" if it is none."""
    if is_talk(text):
        return ""
    told = set(fields) - {"appearance", "personality"}
    while (joint := re.search(r"[,.!:]\s+", text)) and is_talk(text[: joint.start()]):
        text = text[joint.end() :]  # "hm, a clockmaker"
    if asked in ("background", "goal"):
        other = asked == "goal" and not insist and pattern("portrait", "no_wish").match(text)
        return "" if other or told & set(REQUIRED) else neat(pattern("portrait", "hedges").sub("", text))
    match = pattern("portrait", "self").match(text)
    plain = neat(_ARTICLE.sub("", text[match.end() if match else 0 :], count=1))
    if told or not plain:
        return ""
    if asked == "name":
        article = plain != neat(text) and _ARTICLE.match(text[match.end() if match else 0 :])
        described = not re.sub(r"\b(?:and|but)\b|\W", "", _without_adjectives(plain))
        fits = len(plain.split()) <= 4 and nameable(plain) and not article and not described
        name = plain.title() if plain == plain.lower() else plain
        return name if fits or (insist and not article and not re.match(r"i\b", plain, re.I)) else ""
    words = _words(plain)
    acts = re.search(r"(?<!k)(?<!vik)(?<!l)ing$|(?<!bre)(?<!se)(?<!we)ed$|(?<!f)ly$|\w['’](?:ve|ll|re|m|d|t)\b", plain)
    kind = len(words) <= 3 and not set(words) & _not_a_kind() and not acts and not is_talk(words[-1])
    return plain if kind or insist else ""


def _without_adjectives(text: str) -> str:
    return pattern("portrait", "traits").sub("", pattern("portrait", "looks").sub("", text))


def nameable(text: str) -> bool:
    """Whether words may be a name: they are no plain word, no mood, no ancestry, no class and no trait."""
    words = _words(re.sub(r"^(?:Old|Young)\s+", "", text))
    in_names = set(load("portrait")["in_names"].split())
    alone = len(words) == 1 and words[0] not in in_names
    kinds = (pattern("portrait", "ancestries"), _classes(), pattern("portrait", "traits"), pattern("portrait", "looks"))
    return bool(words) and not (
        set(words) & (_not_a_kind() - in_names)
        or (alone and is_talk(text))
        or all(any(kind.fullmatch(word) for kind in kinds) for word in words)
        or is_talk(text.casefold().split()[-1] if not alone and text == text.lower() else "x")
    )


def _stated_name(text: str) -> str:
    match = pattern("portrait", "names").search(text)
    if match is None or pattern("portrait", "names_of_others").search(text[: match.start()]):
        return ""
    words = pattern("portrait", "after_name").split(match["name"].strip(), maxsplit=1)[0].split()[:5]
    if any(word[0].isupper() for word in words):  # "Mira the halfling" is Mira
        while not words[-1][0].isupper():
            words.pop()
    else:
        words = [word.capitalize() for word in words[: 1 if words[1:2] in (["of"], ["the"]) else 2]]
    name = " ".join(words).strip("'\"”“ ")
    return name if name and nameable(name) else ""


def _add(fields: JSON, field: str, text: str) -> None:
    before, joint = str(fields.get(field, "")), "; " if field == "background" else ", "
    fields[field] = before if text in before else f"{before}{joint}{text}" if before else text


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:-[^\W_]+)*", text.casefold())


def _not_a_kind() -> set[str]:
    return set(load("portrait")["not_a_kind"].split())


@cache
def _classes() -> re.Pattern[str]:
    """Match the twelve classes and what else people call themselves."""
    classes: JSON = load("rules")["classes"]
    words = {word for name, about in classes.items() for word in (name, *about["also"].split())}
    words -= {"bounty", "captain", "guard"}
    return re.compile(rf"\b({'|'.join(sorted(words, key=len, reverse=True))})\b", re.I)
