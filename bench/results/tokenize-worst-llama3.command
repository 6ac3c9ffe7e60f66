tokmap-bench tokenize --worst build/measure/texts/prose.txt -t vocab/llama3/tokenizer.json --repeats 5
