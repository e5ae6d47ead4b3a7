# An image without CUDA that serves a model which `sharpen fit` saved:
#
#   docker build -t sharpen .
#   docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/sharpen-out/fit-nodes:/model:ro" -v "$PWD:/data:ro" sharpen \
#       serve /model/model.safetensors /data/nodes.csv /data/edges.csv --host 0.0.0.0
#
# Any other command works as well; results go to a folder that is mounted:
#
#   docker run --rm -v "$PWD:/data" -w /data sharpen fit nodes.csv edges.csv
FROM python:3.12-slim

# The wheel without CUDA: 0.2 GB instead of 5.9.
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[serve,networkx]" && rm -rf /src

RUN useradd --create-home user
USER user
WORKDIR /home/user
EXPOSE 8000
ENTRYPOINT ["sharpen"]
CMD ["--help"]
