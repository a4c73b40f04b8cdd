"""The game's rules, in code: the engine rolls and computes, the model narrates.

- `dice`: `roll` an expression such as 2d20kh1+3; a `Roll` is recorded once and never derived again.
- `sheet`: what a class and an ancestry mean for a character, and how a complete character enters the quest. Read first.
"""
