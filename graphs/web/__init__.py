"""The page: a campaign in a browser, with everything that is remembered beside the story.

`app.create_app` makes the Starlette app that `questbook web` (`serve`) and LangGraph's server show. Read in this order:

- `open_campaign`: a campaign that is open: the turn that is being played, and who watches it. `campaign_pool`: all.
- `app_state`: what the endpoints share. The endpoints are functions of a request: `campaigns` (the list, settings,
  sharing, lore); of one campaign `views`, `play`, `edits`, `memories`. `app` puts them together.
- `story`: turns and tree as the templates show them. `guard`: who may send what, and how much.
"""
