"""The program of a connector whose integration lists: it drives the list hooks, and says what they bring (spec/004).

    command = ["python", "-m", "headwater.listing"]

It runs in the connector's own process, in the connector's folder, and speaks the Collection Profile like any other
connector: so a sync by hooks is a collection run, whoever starts it (INT-154, INT-330).
"""
