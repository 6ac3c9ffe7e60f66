tokmap-bench tokenize build/measure/texts/code.txt -t vocab/gemma/tokenizer.json --repeats 5 --against gigatoken --venv build/peers-venv --documents
