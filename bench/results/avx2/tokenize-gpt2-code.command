tokmap-bench tokenize build/measure/texts/code.txt -t vocab/gpt2/tokenizer.json --repeats 3 --against gigatoken --venv build/peers-venv
