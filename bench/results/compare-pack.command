tokmap-bench compare pack -t vocab/gpt2/tokenizer.json --repeats 3 --seconds 6
