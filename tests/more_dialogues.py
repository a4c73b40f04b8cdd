"""Thirty-one more dialogues of the kind of `test_companion_dialogues`, written without looking at the rules."""

MORE = {
    "the end of another value": """
        I live in Oslo.
        I don't live in Paris.
        Where do I live? -> You live in Oslo. | Paris
        Do I live in Paris? -> No
        Do I live in Oslo? -> Yes
        I don't live in Oslo any more.
        Where do I live? -> do not know | You live in Oslo""",
    "the end of another job": """
        I work as a nurse.
        I no longer work as a teacher.
        What do I do? -> nurse | teacher
        I no longer work as a nurse.
        What do I do? -> do not know | You work as a nurse""",
    "the end of a sister's other job": """
        My sister Anna works as a nurse.
        Anna no longer works as a teacher.
        What does Anna do? -> nurse | teacher""",
    "forgetting another home": """
        I live in Oslo.
        Forget that I live in Rome.
        Where do I live? -> You live in Oslo | Rome""",
    "a favourite that it is not": """
        My favourite colour is blue.
        My favourite colour is not red.
        What is my favourite colour? -> blue | red""",
    "a sister's other home": """
        My sister Anna lives in Bergen.
        Anna doesn't live in Oslo.
        Where does Anna live? -> Bergen | Oslo
        Does Anna live in Oslo? -> No""",
    "moved twice and back": """
        I live in Oslo.
        I moved to Bergen.
        I moved back to Oslo.
        Where do I live? -> You live in Oslo. | Bergen
        Do I live in Bergen? -> No""",
    "moved away without a goal": """
        I live in Oslo.
        I moved away from Oslo.
        Where do I live? -> do not know | You live in Oslo""",
    "moved away from where one never was": """
        I live in Oslo.
        I moved away from Paris.
        Where do I live? -> Oslo | in Paris""",
    "a name that is another's": """
        My name is Ann.
        My sister is called Berit.
        What is my name? -> Ann | Berit
        What is my sister called? -> Berit | Ann""",
    "two pets of a kind": """
        I have a dog named Rex. I have a dog named Fido.
        What are my dogs called? -> Rex, Fido
        Do I have a cat? -> do not know""",
    "a pet that is no more": """
        I have a dog.
        I don't have a dog any more.
        Do I have a dog? -> No""",
    "an allergy that went": """
        I'm allergic to nuts and eggs.
        I'm not allergic to eggs any more.
        What am I allergic to? -> nuts | eggs
        Am I allergic to eggs? -> No""",
    "likes of two people": """
        I like tea. Anna likes coffee.
        What does Anna like? -> coffee | tea
        What do I like? -> tea | coffee
        Does Anna like tea? -> do not know""",
    "a husband's job": """
        My husband Rui works as a baker.
        I work as a lawyer.
        What does my husband do? -> baker | lawyer
        What do I do? -> lawyer | baker
        What does Rui do? -> baker""",
    "a birthday that was corrected": """
        My birthday is on 3 May.
        No, sorry, my birthday is on 5 May.
        When is my birthday? -> 5 May | 3 May""",
    "age a year on": """
        I am 34 years old.
        I turned 35 yesterday.
        How old am I? -> 35 | 34""",
    "hearsay of a friend": """
        My friend Tom told me that Eva lives in Rome.
        Where does Tom live? -> | Tom lives in Rome""",
    "what one wishes": """
        I wish I lived in Lisbon.
        I want to move to Porto.
        I would love to live in Madrid.
        Where do I live? -> do not know | Lisbon, Porto, Madrid""",
    "what one used to do": """
        I used to live in Rome.
        Where do I live? -> do not know | You live in Rome""",
    "a plan of tomorrow": """
        I live in Oslo.
        Next year I will move to Bergen.
        Where do I live? -> Oslo | You live in Bergen""",
    "a question between": """
        I live in Oslo. What is the weather like? -> do not know
        Where do I live? -> Oslo""",
    "no and yes": """
        I don't like fish.
        I like fish now.
        Do I like fish? -> Yes
        What do I not like? -> | fish""",
    "which of two brothers": """
        My brother Ole is 7. My brother Per is 9.
        How old is Per? -> 9 | 7
        How old is Ole? -> 7 | 9""",
    "a boss that changed": """
        My boss is Karin.
        My boss is Lars now.
        Who is my boss? -> Lars | Karin""",
    "my mother's name": """
        My mother's name is Greta.
        What is my mother's name? -> Greta
        What is my father's name? -> do not know | Greta""",
    "where one comes from": """
        I'm from Porto but I live in Lisbon.
        Where am I from? -> Porto | Lisbon
        Where do I live? -> Lisbon | Porto""",
    "a car's colour that changed": """
        My car is red.
        I had my car painted. My car is blue now.
        What colour is my car? -> blue | red""",
    "vegetarian no longer": """
        I'm a vegetarian.
        I'm no longer a vegetarian.
        Am I a vegetarian? -> No""",
    "single, then married": """
        I am single.
        I am married now.
        Am I married? -> Yes
        Am I single? -> | Yes""",
    "a language one speaks": """
        I speak French and my wife speaks German.
        Do I speak German? -> do not know | Yes
        What languages do I speak? -> French | German
        What does my wife speak? -> German | French""",
}
