"""Real RocketMQ peers against a name server on loopback. Start at `main.py`; README.md tells the rest."""
