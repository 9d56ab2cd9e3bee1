"""The judge: grades an exercise without ever importing what the student wrote."""
