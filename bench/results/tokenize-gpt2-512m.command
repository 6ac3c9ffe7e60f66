tokmap-bench tokenize build/measure/tokmap-measure-512m.txt -t vocab/gpt2/tokenizer.json --documents --repeats 7
