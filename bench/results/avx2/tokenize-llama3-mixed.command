tokmap-bench tokenize build/measure/texts/mixed.txt -t vocab/llama3/tokenizer.json --repeats 3 --against gigatoken --venv build/peers-venv
