tokmap-bench tokenize build/measure/texts/prose.txt -t vocab/gpt2/tokenizer.json --repeats 5 --against gigatoken --venv build/peers-venv
