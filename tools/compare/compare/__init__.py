"""Measures name servers side by side; processes, jars and the protocol client are those of tools/interop."""
