tokmap-bench compare pack -t vocab/gpt2/tokenizer.json
