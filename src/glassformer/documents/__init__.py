"""Files to be translated: their texts are replaced, and everything else keeps its bytes."""
