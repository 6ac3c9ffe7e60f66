tokmap-bench compare loaders build/measure/tokmap-measure-1g --repeats 3 --seconds 0.5
