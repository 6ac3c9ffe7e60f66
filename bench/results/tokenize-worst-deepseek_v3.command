tokmap-bench tokenize --worst build/measure/texts/prose.txt -t vocab/deepseek_v3/tokenizer.json --repeats 5
