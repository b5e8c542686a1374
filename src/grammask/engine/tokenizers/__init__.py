"""Readers of tokenizer formats: each turns one into a ``TokenTable``, the true bytes of every token id.

* ``table``: the table itself, limits, ``VocabularyError``
* ``decoders``: what a Hugging Face decoder makes of each token, as bytes
* ``huggingface``: tokenizer.json, ``tokenizers.Tokenizer`` and transformers tokenizers
* ``gguf``: the metadata of GGUF files
* ``tiktoken_ranks``: tiktoken encodings
* ``end_of_text``: which tokens end a generation
* ``encoding``: the tokenizer's own encoding of a text, checked to spell exactly that text
"""
