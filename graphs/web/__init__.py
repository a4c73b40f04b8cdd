"""The page: a campaign in a browser, with everything that is remembered beside the story.

`app.create_app` makes the Starlette app that `questbook web` serves and LangGraph's server mounts. Read in this order:

- `open_campaign`: a campaign that is open: the turn that is being played, and who watches it.
- `story`: what was said, turn by turn, as the page shows it.
- `panels`: what stands beside the story, made of the player's view.
- `app_state`: what all routes share; then the routes: `play`, `views`, `edits`, `memories`, `chronicle`, `campaigns`.
- `app`: the routes together.
- `guard`: who may send what.
"""
