"""What ordinary people say to an assistant, written by hand for `test_recall_intents.py`: none of it is from BEAM."""

STANDING = """\
Always answer in metric units.
Please never use emojis when you write to me.
From now on, call me Sam.
Whenever I paste code, only show me the lines you changed.
Don't ever give me spoilers.
In future, keep your answers under five sentences.
Stop apologising all the time.
Remember to always ask before you book anything.
When I ask for recipes, leave out anything with nuts.
If I send you a photo, describe it in one line first.
Every time I mention a price, convert it to euros.
I want you to always cite your sources.
Going forward, use British spelling.
You should never suggest restaurants with pork.
Can you please always reply in French?
Just so you know: no bullet points in your answers, ever.
For all future answers, skip the introduction.
Each time we talk, start with a joke.
Keep your replies short from here on.
I'd like you to address me formally at all times.
Make sure you never share my address with anyone.
Don't call me buddy again.
Hi! I live in Oslo now. From now on please use Celsius.
Antworte mir bitte immer auf Deutsch.
Nenn mich ab jetzt Alex.
Schlag mir nie wieder Fleischgerichte vor.
Wenn ich nach dem Wetter frage, gib die Temperatur in Celsius an.
Verwende künftig keine Emojis mehr.
Immer wenn ich Code schicke, erkläre nur die Änderungen.
Von nun an duzen wir uns.
In Zukunft bitte kürzere Antworten.
Ich möchte, dass du immer die Quellen nennst.
Bitte niemals Termine vor neun Uhr vorschlagen.
Du sollst mich grundsätzlich siezen.
Frag mich jedes Mal, bevor du etwas bestellst.
Use the 24-hour clock with me, always.
Never recommend anything from Amazon, please.
If I ask about my meds, remind me to check with Dr. Ruiz.
Please round all amounts to whole euros from now on.
I need you to always double check the time zone.
No jokes about my weight, please.
Whenever you mention a film, tell me the year too.
Don't start your replies with "Great question" any more.
Going forward I'd like your answers as a table.
Be blunt with me, always.
My rule: never schedule anything on Sundays.
Could you sign off every message with my initials in future?
You must not ever mention my ex.
Call me Captain whenever we talk.
Sei ab jetzt bitte etwas kürzer.
Erinnere mich immer daran, meine Tabletten zu nehmen.
Keine Rezepte mit Fisch mehr, bitte.
Falls ich nach Filmen frage, bitte keine Horrorfilme.
Rechne Preise immer in Franken um.
Du darfst mir nie verraten, wie der Film ausgeht."""

NOT_STANDING = """\
I always forget my keys.
Never mind.
Whenever I ask my mother, she says no.
She never answers my calls.
It always rains when I visit my parents.
Every time I go to the dentist, I get nervous.
Always a pleasure talking to you!
From now on I'll go running every morning.
Never have I been so tired.
Whenever it rains, the roof leaks.
When I talk to my boss, he gets angry.
If I ask her out, what should I say?
I will never eat there again.
In future the company wants to move to Berlin.
Every time I mention it to him he laughs.
Do you always answer in English?
Have you ever been to Rome?
Why do you never use emojis?
Stop me if I've told you this.
Please send the mail to Anna now.
Can you convert this price to euros?
Never again will I book that airline.
My boss told me to always double-check the invoices.
The recipe says never to open the oven.
It's been like this ever since.
Always wanted to see the northern lights!
Keep me posted on the match tonight.
Ich vergesse immer meine Schlüssel.
Immer wieder schön, mit dir zu reden.
Nie im Leben hätte ich das gedacht.
Wenn ich meine Mutter frage, sagt sie nein.
Jedes Mal, wenn ich ihn sehe, lacht er.
In Zukunft werde ich öfter laufen.
Immer wenn es regnet, ist der Keller nass.
Antwortest du immer so schnell?
Er antwortet mir nie.
Ab jetzt spare ich jeden Monat hundert Euro.
I never really liked school.
Always look on the bright side, my dad used to say.
Whenever we talk about money he leaves the room.
If I tell him the truth, will he leave?
Every time I cook, my cat sits on the stove.
From now on we have a new boss.
In the future I want to be a vet.
Never been to Japan, is it nice in May?
Always the same with this printer.
Keep it simple, my teacher said.
We should always have called first.
Can you always see who read a message?
I want to always be there for my kids.
Don't worry about it any more.
She told me to never call her again.
Don't you ever get tired?
Nie hat er Zeit für mich.
Immer dasselbe mit dem Drucker.
Wenn ich ihm schreibe, antwortet er nicht.
Ab morgen mache ich Diät.
Künftig fährt der Bus alle zehn Minuten.
Mein Chef sagt immer, ich soll früher kommen."""

PREFERENCES = """\
I prefer aisle seats.
I'd rather take the train than fly.
My favourite colour is green.
I like to keep my weekends free.
We usually cook at home.
I'm not a fan of long meetings.
I can't stand coriander.
I never eat meat.
I don't like horror films.
I'm more of a morning person.
Quiet places suit me best.
I hate being late.
I always take the window seat.
I enjoy long walks by the sea.
Ich esse am liebsten italienisch.
Ich mag keine Oliven.
Ich würde lieber mit dem Zug fahren.
Mein Lieblingsbuch ist Momo.
Koriander kann ich nicht ausstehen.
Ich trinke nie Alkohol.
Ich bin kein Fan von Achterbahnen.
Wir fahren lieber in die Berge."""

NO_PREFERENCES = """\
I always forget my keys.
The train is cheaper than the plane.
It looks like rain.
I never knew that.
My sister prefers tea.
Would you like some coffee?
I moved to Bergen in May.
What do people like about Rome?
He hates his job.
I have a meeting at nine.
I like that idea!
We were late again.
I love you all.
Do I need a visa for Japan?
Ich habe morgen einen Termin.
Meine Schwester mag Tee.
Was isst man in Rom am Abend?
Ich war gestern in Köln.
Er fährt lieber Bus.
Wir haben lange gewartet."""

ADVICE = """\
Can you recommend a restaurant for Friday?
What should I cook tonight?
Could you suggest a book for the beach?
Should I take the train or the car?
I'm planning a weekend in Lisbon.
Any ideas for a birthday present?
Do you think a cat would suit us?
Kannst du mir ein Restaurant empfehlen?
Was soll ich heute kochen?
Hast du eine Idee für ein Geschenk?
Ich suche ein gutes Buch für den Urlaub.
Könntest du mir etwas vorschlagen?"""

NO_ADVICE = """\
What did you recommend for Friday?
Where do I live?
When did I say that I was looking for a flat?
What have I planned for May?
Which book did you suggest?
How old is my cat?
Was hast du mir empfohlen?
Wo wohne ich?
Wann habe ich den Zahnarzt gesucht?
Wie alt ist meine Katze?"""

ORDER = """\
In which order did I visit the cities?
List the topics in the order I brought them up.
Walk me through the events chronologically.
In welcher Reihenfolge habe ich die Städte besucht?"""

SUMMARY = """\
Summarize what we said about the garden.
Give me a quick overview of my project.
Can you recap the trip?
Sum up our plans.
Fass bitte zusammen, was wir über den Garten gesagt haben.
Gib mir einen Überblick über das Projekt."""

PLAIN = """\
Where do I live?
I ordered a sofa.
In order to sleep I drink tea.
What is my sister's name?
Wo wohnt Anna?
Ich habe in Ordnung gebracht, was kaputt war."""
