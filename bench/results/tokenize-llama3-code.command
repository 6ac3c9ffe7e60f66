tokmap-bench tokenize build/measure/texts/code.txt -t vocab/llama3/tokenizer.json --repeats 5 --against gigatoken --venv build/peers-venv
