tokmap-bench trace --repeats 21 build/measure/tokmap-measure-1g
