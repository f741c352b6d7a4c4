"""Calls every public function with hostile objects, whose callbacks change everything that takes part in the call.

`entries` lists the functions, `arguments` and `producers` make what they are called with, `actions` is what a callback
does, `case` makes one call and judges it, `pool` runs cases in processes of their own.
"""
