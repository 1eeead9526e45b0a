"""What a sample says of its population: uniques of the population, and the chance of a record among the people it stands for."""

from anon_spark.assessment.population.estimates import PopulationFacts, Uniques, population_facts

__all__ = ["PopulationFacts", "Uniques", "population_facts"]
