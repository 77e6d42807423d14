"""The small invented world that all tasks speak of. Its facts never change; everything is seen in
training, and what is held out are questions and combinations."""
import random

TOWNS = ["Orm", "Velin", "Tarsk", "Dunmere", "Issel", "Kolby", "Harn", "Pell", "Quill", "Rusk",
         "Sorrel", "Umber", "Wick", "Yarrow", "Brant", "Calder"]
RIVERS = ["Aven", "Bree", "Corrin", "Dell", "Esk", "Fenn", "Gant", "Holm", "Irk", "Jorl", "Kest",
          "Lomm", "Mirr", "Noss", "Ouse", "Prell"]
PEOPLE = ["Mira", "Tom", "Anna", "Ben", "Lena", "Sam", "Nora", "Paul", "Ida", "Max", "Ella", "Jon",
          "Rosa", "Finn", "Lucy", "Karl"]
GOODS = ["glass", "bread", "honey", "wool", "silver", "salt", "paper", "boats", "clocks", "cheese",
         "lamps", "tea", "bells", "shoes", "rope", "soap"]
COLORS = ["red", "blue", "green", "white", "black", "yellow", "brown", "gray"]
CREATURES = ["drell", "grask", "lumo", "nibbit", "ostra", "pim", "snerl", "torv", "ulf", "varn",
             "wuzz", "zeb"]
FOODS = ["moss", "nuts", "fish", "grass", "berries", "roots", "leaves", "seeds", "worms", "mud",
         "snow", "bark"]
HOMES = ["caves", "trees", "lakes", "fields", "hills", "barns", "sand", "reeds", "ruins", "bushes",
         "rivers", "towers"]


def _facts():
    order = random.Random(7)

    def shuffled(values):
        return order.sample(values, len(values))

    towns = zip(TOWNS, shuffled(RIVERS), shuffled(PEOPLE), shuffled(GOODS), shuffled(COLORS * 2))
    creatures = zip(CREATURES, shuffled(FOODS), shuffled(HOMES), shuffled((COLORS * 2)[:12]))
    return ({town: dict(river=river, mayor=mayor, goods=goods, color=color)
             for town, river, mayor, goods, color in towns},
            {name: dict(food=food, home=home, color=color)
             for name, food, home, color in creatures})


TOWN, CREATURE = _facts()
