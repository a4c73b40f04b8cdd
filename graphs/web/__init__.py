"""The page: a campaign in a browser, with everything that is remembered beside the story.

`app.create_app` makes the Starlette app that `questbook web` serves and LangGraph's server mounts. Read in this order:

- `open_campaign`: a campaign that is open: the turn that is being played, and who watches it. `campaign_pool`: all.
- `app_state`: what the endpoints share. The endpoints are functions of a request: `campaigns` and `settings`; of one
  campaign `views`, `play`, `edits`, `memories`, `chronicle`. `app` puts them together.
- `story`, `panels`, `tree`: what the templates show, made of the player's view. `fields`: what a person may edit.
- `guard`, `upload_limit`: who may send what, and how much. `campaign_record`: what is kept of a campaign beside it.
"""
