from .web_app import create_app as create_app

__all__: list[str]
