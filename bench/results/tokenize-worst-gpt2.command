tokmap-bench tokenize --worst build/measure/texts/prose.txt -t vocab/gpt2/tokenizer.json --repeats 5
