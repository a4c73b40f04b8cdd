"""Tables: the small change of storytelling. Every text here was written for Questbook."""

from __future__ import annotations

HOURS = ["dawn", "morning", "noon", "afternoon", "dusk", "night"]

OUTSIDE = [
    "A thin rain has opinions about your collar.",
    "Somewhere a dog barks twice, thinks better of it, and is quiet.",
    "The wind smells of woodsmoke and wet leaves.",
    "Two crows watch you like a pair of magistrates.",
    "The clouds hang low enough to be leaned on.",
    "A bell counts the hour and gets it wrong.",
    "Mud takes a lively interest in your boots.",
    "For a moment the sun comes out, looks at all this, and goes back in.",
    "A cart creaks by on the far road; its driver does not look up.",
    "The air tastes of iron, as before a storm.",
    "Mist gathers in the low places as if it had an appointment.",
    "A cat on a wall gives you the look that cats keep for fools and fishmongers.",
    "Starlings turn over the roofs like one thought with many wings.",
    "Somebody is hammering, two beats and a rest, two beats and a rest.",
]

INSIDE = [
    "Dust drifts through the light as if it had all day.",
    "Something small and busy runs along the wainscot.",
    "The boards complain under you, each in its own voice.",
    "It smells of cold ashes, tallow and old quarrels.",
    "A draught finds the back of your neck and settles there.",
    "Water drips in the dark, patient as a creditor.",
    "A moth bumbles against the light, convinced of its cause.",
    "The silence here has a shape, like a chair just left.",
    "Somewhere a door that nobody touched clicks shut.",
    "Your own shadow makes larger gestures than you do.",
    "The walls sweat. So, a little, do you.",
    "A spider has been to a lot of trouble in the corner.",
]

CONFUSED = [
    "You turn the thought over – “{words}” – but the moment offers no handle for it.",
    "“{words}”, you say to nobody in particular. {place} takes it under advisement.",
    "You make a start on that – “{words}” – and find that it is harder to do than to say.",
    "“{words}.” It sounds well enough; only nothing here answers to it.",
    "For a breath you consider it: “{words}”. Then the world, being the world, waits for something more particular.",
    "You hold the idea up to the light: “{words}”. Interesting. Not, just now, a plan.",
]

ODD_WORDS = [
    "You speak some very odd words aloud, all brackets and commands. The air declines to obey. {witness}",
    "Strange phrases leave your mouth, like a spell in a language of clerks. Nothing happens, thoroughly. {witness}",
    "You recite something that might be law, or lunacy. The world does not so much as clear its throat. {witness}",
]

REFUSED = [
    "You look, and hope, and look again: the world goes on exactly as before. {echo} remains a wish.",
    "It is a fine thing to say. {echo}, though, is not something that saying makes so.",
    "For one shining moment it feels true. Then it is only you, what you really carry, and the matter at hand; "
    "{echo} stays where it was, which is nowhere.",
    "The gods of fortune hear you, confer, and send their regrets. There is no {echo} here.",
]

PLANTED = [
    "{listener} hears you out. “{fact}”: said aloud, it has weight, and it will be remembered.",
    "“{fact}.” {listener} repeats the words slowly, the way one puts a thing in a safe place.",
    "So it is said: “{fact}”. {listener} nods, and it stays between you like a coin on a table.",
]

PLANTED_ALONE = [
    "You say it to yourself until it holds: “{fact}”. It will keep.",
    "“{fact}.” You put the words away where you will find them again.",
    "You fix it in your mind: “{fact}”. There. That will not rub off.",
]

CARVED = [
    "You take your time over it, and then it is done: “{fact}”. Anyone who comes this way can see it.",
    "It goes slowly, and it is worth the trouble: “{fact}”. You step back. It will last.",
    "“{fact}”: no sooner decided than done. The world is a little different, in a place that you know of.",
]

UNKNOWN = [
    "You search your memory for that, and find the shelf empty: {subject} is nothing you know of – not yet.",
    "You turn it over and over, but no: about {subject} you do not know anything. Somebody else might.",
    "Nothing. If you ever knew about {subject}, you do not know it now.",
    "You do not know. {subject_c} has not come up in anything that you remember.",
]

REMEMBERED = [
    "You think back.",
    "It comes to you at once.",
    "You close your eyes for a moment, and there it is.",
    "Yes – you remember.",
]

EMPTY_HANDED = [
    "You look under things and behind things and find what people leave: dust, crumbs, one button.",
    "You go over the place by hand and eye. If it hides anything, it hides it from you.",
    "A careful search turns up nothing but a splinter, which turns up in your thumb.",
    "Nothing. You do feel that you and this place know each other better now.",
]

MISSED_SEARCH = [
    "You have the feeling that your eye slid over something. It will not slide back.",
    "You search with more zeal than method; if there is something here, it is safe from you for now.",
    "Halfway through, a noise makes you start, and you lose your place. There may be more here than you saw.",
]

NEUTRAL_WIN = [
    "It comes off better than you had any right to expect",
    "Neatly done, and nobody the wiser",
    "Your hands know what to do before you do",
    "It works, and you allow yourself half a smile",
]

NEUTRAL_LOSE = [
    "It very nearly works, which is the most annoying way of not working",
    "Your foot finds the one thing that makes a noise",
    "It does not come off, and you are glad that there were few witnesses",
    "Fortune looks the other way at the wrong moment",
]

PERSUADED = [
    "{who} looks at you for a long moment and gives way. “All right. All right.”",
    "Something in {who} unbends. “You have a way of putting things.”",
    "{who} sighs like somebody putting down a sack. “Since it's you that asks.”",
]

UNMOVED = [
    "{who} folds both arms. “No. And the second time you ask it will be no again, only louder.”",
    "{who} listens to the end, which is polite, and shakes a head, which is not what you wanted.",
    "“You talk well”, says {who}. “That is what worries me.”",
]

NO_TOPIC = [
    "{who} thinks about {topic}, and shrugs. “Couldn't say. Ask me about {other}, now.”",
    "“{topic_c}?” {who} shakes a head. “Not a thing I know about. {other_c}, that I could tell you about.”",
    "{who} gives the question the attention it deserves, and has no answer. The mind there is plainly on {other}.",
    "“If I knew about {topic} I'd charge for it”, says {who}. “{other_c} is what keeps me awake.”",
]

TOLD_ALL = [
    "“You have had all I know”, says {who}, not unkindly, and says it once more: {gist}",
    "{who} has no more than this, and repeats it: {gist}",
]

WAITED = [
    "You wait. The world, unobserved for a moment, gets on with things.",
    "You give it time. Time takes it, and gives nothing back but a stiff knee.",
    "You stand still and let things come to you. What comes is mostly weather.",
]

HEARD_WAITING = [
    "While you wait it comes to you again what you have to go on: {objective}.",
    "In the stillness one thought will not lie down: {objective}.",
]

SHORT_REST = [
    "You sit, drink, tighten a strap, and stare at nothing with great concentration. It helps.",
    "You find a dry place and an hour that nobody is using.",
]

LONG_REST = [
    "You sleep as if somebody were paying you for it, and wake at dawn, whole again.",
    "The night goes over you like a hand over a page. At dawn everything hurts less, and some things not at all.",
    "You dream of a door, and of somebody on the far side of it humming. Then it is dawn, and you are yourself again.",
]

HITS = [
    "Your {weapon} goes home for {harm}.",
    "You find the gap and fill it with your {weapon}: {harm}.",
    "A short, ugly moment, and your {weapon} has done {harm}.",
    "No flourish, just your {weapon} and good timing: {harm}.",
]

GREAT_HIT = [
    "It is the blow that you will tell people about: your {weapon} takes the {foe} clean, for {harm}.",
    "Everything lines up, arm and eye and luck, and your {weapon} does {harm}.",
]

MISSES = [
    "Your {weapon} cuts a very fine piece of air.",
    "The {foe} is not where your {weapon} expects it.",
    "You strike; the {foe} gives a foot of ground, and your {weapon} gets the ground.",
    "It would have been a beautiful blow half a heartbeat sooner.",
]

FOE_STATE = ["barely scratched", "hurt", "hurt badly", "all but done"]

DOWNED = [
    "The ground comes up with surprising tenderness. When you open your eyes it is dawn at {start}: somebody dragged "
    "you here, wrapped your head, and helped themselves to a little of your purse for the trouble.",
    "Then there is a gap where an evening should be. You wake at dawn at {start}, under a stranger's coat, sore in "
    "places you had forgotten, and lighter by some coins.",
]

FLED = [
    "You give up your ground with speed and no shame at all.",
    "You run. Discretion has long legs.",
]

COMPLICATIONS = [
    "A child has been following you, and thinks that you have not noticed.",
    "A pedlar tries to sell you a map of the place where you are standing.",
    "A loose goose takes against you for reasons of its own.",
    "Somebody across the way pulls a shutter to, quickly, when you look.",
    "Your bootlace goes, at once and completely.",
    "A stranger greets you by the wrong name and walks on before you can object.",
    "Two people stop talking as you come near, and start again, about turnips.",
]

POURED = [
    "One gold, and what comes in the mug is brown, warm and nourishing, and may once have been beer.",
    "You are served with a flourish. It tastes of smoke and of good company; it is mostly smoke.",
    "You drink. For as long as the mug lasts, nothing anywhere is your business.",
]

FLAVOUR = {
    "yes": ["You nod, and so it is agreed. What it comes to is this: {objective}."],
    "no": ["You shake your head. Nobody can make you, and nobody tries; the matter itself goes on waiting."],
    "thank": ["You say your thanks, and they are taken, the way thanks are in these parts: with a sniff, and kept."],
    "smile": ["You smile. It goes out into {place}, looks about, and on the whole is smiled back at."],
    "nod": ["So you do. {place} takes note of it, and carries on."],
    "curse": ["You say the short word, and then the long one. {place} has heard both, but seldom with such feeling."],
    "whistle": ["You whistle a bar or two. Somewhere somebody joins in, a little flat."],
    "sing": ["You sing, and {place} listens. A few bars in you remember that you know only the one verse."],
    "dance": ["You dance a few steps. {place} has seen worse, though not recently."],
    "pray": ["You pray. No voice answers, but the worry in your chest sits down and folds its hands."],
    "laugh": ["You laugh, and it does you good, and it worries everybody else."],
    "shout": ["You shout. It comes back from the far side of {place} in a smaller voice."],
    "eat": ["You eat what there is. It has been bread; it is at least still food."],
    "cry": ["You let it come. Nobody in {place} says anything, which is the kindest thing {place} has done."],
    "joke": ["You tell the one about the bishop and the goose. The silence afterwards is almost respectful."],
    "think": ["You stop and think it through from the beginning. What it comes to is this: {objective}."],
}

BRIDGES = [
    "The road takes you, as roads do, and sets you down somewhere else.",
    "Two days of walking, one bad inn and one good sunset later, the world has something for you again.",
    "You have hardly got used to having nothing to do when it ends.",
    "Word of what you did travels faster than you, and arrives in better clothes.",
]

AGAIN = "If it all sounds like something you have heard before – well. Roads are long, and the world is short of plots."

WEAPONS = {
    "barbarian": ("strength", "1d12", "axe"),
    "bard": ("dexterity", "1d8", "rapier"),
    "cleric": ("strength", "1d6", "mace"),
    "druid": ("wisdom", "1d8", "thorn-staff"),
    "fighter": ("strength", "1d8", "sword"),
    "monk": ("dexterity", "1d6", "quick hands"),
    "paladin": ("strength", "1d8", "sword"),
    "ranger": ("dexterity", "1d8", "bow"),
    "rogue": ("dexterity", "1d6", "short blade"),
    "sorcerer": ("charisma", "1d8", "bolt of raw magic"),
    "warlock": ("charisma", "1d10", "dark fire"),
    "wizard": ("intelligence", "1d10", "bolt of fire"),
}
"""Class to the ability it fights with, its damage die, and what it strikes with."""

ARMOUR = {"fighter": 16, "paladin": 16, "cleric": 15, "ranger": 14, "barbarian": 14, "monk": 14, "druid": 13}
"""Class to the least armour class that its usual gear gives; others go by 11 and Dexterity."""

SKILLED = {
    "barbarian": {"Athletics", "Intimidation", "Survival", "Perception"},
    "bard": {"Persuasion", "Performance", "Deception", "Acrobatics", "Insight"},
    "cleric": {"Insight", "Medicine", "Religion", "Persuasion"},
    "druid": {"Nature", "Survival", "Animal Handling", "Perception"},
    "fighter": {"Athletics", "Intimidation", "Perception"},
    "monk": {"Acrobatics", "Stealth", "Insight"},
    "paladin": {"Athletics", "Persuasion", "Religion"},
    "ranger": {"Stealth", "Survival", "Perception", "Nature", "Animal Handling"},
    "rogue": {"Stealth", "Sleight of Hand", "Acrobatics", "Deception", "Investigation", "Perception"},
    "sorcerer": {"Arcana", "Persuasion", "Deception"},
    "warlock": {"Arcana", "Deception", "Intimidation"},
    "wizard": {"Arcana", "History", "Investigation"},
}
"""Class to the skills that it adds its proficiency to."""

SKILLS = {
    "Athletics": "strength",
    "Acrobatics": "dexterity",
    "Sleight of Hand": "dexterity",
    "Stealth": "dexterity",
    "Arcana": "intelligence",
    "History": "intelligence",
    "Investigation": "intelligence",
    "Nature": "intelligence",
    "Religion": "intelligence",
    "Animal Handling": "wisdom",
    "Insight": "wisdom",
    "Medicine": "wisdom",
    "Perception": "wisdom",
    "Survival": "wisdom",
    "Deception": "charisma",
    "Intimidation": "charisma",
    "Performance": "charisma",
    "Persuasion": "charisma",
}
"""Skill to ability; SRD 5.1."""

HONEST = (
    "I am Questbook's offline storyteller: hand-written tales, tables and dice, and no language model at all. I "
    "understand plain sentences about plain deeds (look, go, talk, ask about, take, give, use, attack, search, rest) "
    "and I remember what my notes and your memories hold. For a dungeon master with more imagination, start the game "
    "with --model, for example --model openai:gpt-4.1-mini; your campaign goes along."
)

CALLINGS = {
    "barbarian": "berserker savage",
    "bard": "minstrel singer skald musician poet storyteller entertainer troubadour",
    "cleric": "priest priestess healer acolyte nun",
    "druid": "shaman witch herbalist",
    "fighter": "warrior soldier knight mercenary guard swordsman swordswoman gladiator sellsword duelist captain",
    "monk": "martial brawler",
    "paladin": "crusader templar",
    "ranger": "hunter scout archer tracker bounty outlander",
    "rogue": "thief assassin burglar pickpocket spy smuggler pirate swashbuckler cutpurse bandit",
    "sorcerer": "sorceress",
    "warlock": "occultist cultist hexblade",
    "wizard": "mage magician scholar necromancer illusionist alchemist artificer enchanter",
}
"""The twelve classes, and what else people call themselves."""
